package compat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;

/**
 * Runs the scenarios with the official Java client and prints one line for each.
 *
 * <p>The server is the one that PUBSUB_EMULATOR_HOST names; ORDERLY_RESTART is explained in the
 * README.
 */
final class Main {
  /** A scenario throws if a promise is broken. */
  private interface Scenario {
    void play(Stage stage) throws Exception;
  }

  private static final Map<String, Scenario> CONCURRENT = new LinkedHashMap<>();
  private static final Map<String, Scenario> DISRUPTIVE = Map.of("restart", Restart::restart);

  static {
    CONCURRENT.put("create", Admin::create);
    CONCURRENT.put("update", Admin::update);
    CONCURRENT.put("delete", Admin::delete);
    CONCURRENT.put("publish_ordered", Ordering::publishOrdered);
    CONCURRENT.put("stream", Ordering::stream);
    CONCURRENT.put("nack", Ordering::nack);
    CONCURRENT.put("expiry", Delivery::expiry);
    CONCURRENT.put("exactly_once", Delivery::exactlyOnce);
    CONCURRENT.put("flow_control", Delivery::flowControl);
    CONCURRENT.put("dead_letter", Delivery::deadLetter);
    CONCURRENT.put("filter", Delivery::filter);
  }

  public static void main(String[] arguments) throws Exception {
    List<String> wanted = List.of(arguments);
    List<Callable<Boolean>> concurrent =
        CONCURRENT.entrySet().stream()
            .filter(entry -> wanted.isEmpty() || wanted.contains(entry.getKey()))
            .<Callable<Boolean>>map(entry -> () -> play(entry.getKey(), entry.getValue()))
            .toList();
    boolean passed = true;
    for (var played : Executors.newCachedThreadPool().invokeAll(concurrent)) {
      passed &= played.get();
    }
    for (var entry : DISRUPTIVE.entrySet()) {
      if (!wanted.isEmpty() && !wanted.contains(entry.getKey())) {
        continue;
      }
      if (System.getenv("ORDERLY_RESTART") != null) {
        passed &= play(entry.getKey(), entry.getValue());
      } else {
        report(entry.getKey(), "skipped", 0, "ORDERLY_RESTART is not set");
      }
    }
    System.exit(passed ? 0 : 1);
  }

  /** Plays one scenario; whether it passed. */
  private static boolean play(String name, Scenario scenario) {
    long began = System.currentTimeMillis();
    try (Stage stage = new Stage(name)) {
      scenario.play(stage);
    } catch (Exception | AssertionError error) {
      report(name, "failed", System.currentTimeMillis() - began, error.toString());
      error.printStackTrace();
      return false;
    }
    report(name, "passed", System.currentTimeMillis() - began, "");
    return true;
  }

  private static void report(String name, String outcome, long milliseconds, String reason) {
    String oneLine = reason.replaceAll("\\s+", " ");
    System.out.printf("%s %s %.1fs %s%n", name, outcome, milliseconds / 1000.0, oneLine);
  }
}
