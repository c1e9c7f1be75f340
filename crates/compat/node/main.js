// Runs the scenarios with the official Node client and prints one line for each.
//
// The server is the one that PUBSUB_EMULATOR_HOST names; ORDERLY_RESTART is explained in the README.
'use strict';

const {Stage} = require('./stage');
const admin = require('./admin');
const ordering = require('./ordering');
const delivery = require('./delivery');
const {restart} = require('./restart');

// Independent of each other, so they run at the same time.
const CONCURRENT = {
  create: admin.create,
  update: admin.update,
  delete: admin.deleteResources,
  publish_ordered: ordering.publishOrdered,
  stream: ordering.stream,
  nack: ordering.nack,
  expiry: delivery.expiry,
  exactly_once: delivery.exactlyOnce,
  flow_control: delivery.flowControl,
  dead_letter: delivery.deadLetter,
  filter: delivery.filter,
};

// These disturb every client of the server, so they run alone, at the end.
const DISRUPTIVE = {restart};

async function main() {
  const names = process.argv.slice(2);
  const wanted = ([name]) => names.length === 0 || names.includes(name);
  const passed = await Promise.all(Object.entries(CONCURRENT).filter(wanted).map(play));
  for (const entry of Object.entries(DISRUPTIVE).filter(wanted)) {
    if (process.env.ORDERLY_RESTART) {
      passed.push(await play(entry));
    } else {
      report(entry[0], 'skipped', 0, 'ORDERLY_RESTART is not set');
    }
  }
  process.exit(passed.every(Boolean) ? 0 : 1);
}

// Plays one scenario; whether it passed.
async function play([name, scenario]) {
  const began = Date.now();
  const stage = new Stage(name);
  try {
    await scenario(stage);
    report(name, 'passed', Date.now() - began);
    return true;
  } catch (error) {
    report(name, 'failed', Date.now() - began, error.message);
    console.error(error.stack);
    return false;
  } finally {
    await stage.close();
  }
}

function report(name, outcome, milliseconds, reason = '') {
  const seconds = (milliseconds / 1000).toFixed(1);
  console.log(`${name} ${outcome} ${seconds}s ${reason.replace(/\s+/g, ' ')}`);
}

main();
