package compat;

import com.google.common.util.concurrent.Monitor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** What a receiver has seen so far, for the scenario's thread to wait on. */
final class Inbox<T> {
  private final Monitor monitor = new Monitor();
  private final List<T> items = new ArrayList<>();

  void add(T item) {
    monitor.enter();
    try {
      items.add(item);
    } finally {
      monitor.leave();
    }
  }

  List<T> items() {
    monitor.enter();
    try {
      return List.copyOf(items);
    } finally {
      monitor.leave();
    }
  }

  /** Waits until the items satisfy the predicate; the items. */
  List<T> await(Predicate<List<T>> satisfied, Duration patience) throws InterruptedException {
    var guard =
        new Monitor.Guard(monitor) {
          @Override
          public boolean isSatisfied() {
            return satisfied.test(items);
          }
        };
    if (!monitor.enterWhen(guard, patience.toMillis(), TimeUnit.MILLISECONDS)) {
      List<T> seen = items();
      List<T> last = seen.subList(Math.max(0, seen.size() - 20), seen.size());
      throw new AssertionError(
          "after " + patience + ": " + seen.size() + " items, the last " + last);
    }
    try {
      return List.copyOf(items);
    } finally {
      monitor.leave();
    }
  }

  List<T> await(Predicate<List<T>> satisfied) throws InterruptedException {
    return await(satisfied, Stage.PATIENCE);
  }

  List<T> awaitCount(int count) throws InterruptedException {
    return await(items -> items.size() >= count);
  }
}
