// A bulk semaphore: threads take units, wait for units that others are about to bring, or bring
// them.
//
// After Gelado and Garland's, which Ouroboros uses, but each counter is a word of its own: packed
// into 64 bits, they overflow, and each change is a compare-and-swap in a loop. Here a thread
// knows by one addition what to do: `value` says how many units it and others lack.
#pragma once
#include "together.cuh"

namespace ouroboros {

struct alignas(128) Semaphore {
  u64 value;     // units to take, as a signed number; below zero, units that threads wait for
  u64 grants;    // units for those that wait
  u64 orders;    // threads that are bringing units
  u64 begun;     // all that ever were
  u64 failures;  // how often there were none to bring

  __device__ void begin(u64 units) {
    value = units;
    grants = orders = begun = failures = 0;
  }

  __device__ void release(u64 units) {
    const i64 before = (i64)atomicAdd(&value, units);
    if (before < 0) atomicAdd(&grants, least(units, -before));
  }

  __device__ void release_one() {
    if ((i64)add_together(&value, 1) < 0) add_together(&grants, 1);
  }

  // Takes units that are there at once, or none.
  __device__ bool try_acquire(u64 units) {
    if (units == 1) {
      if ((i64)load(&value) <= 0) return false;
      return (i64)add_together(&value, -1) > 0 || withdraw(1) == 0;
    }
    u64 seen = load(&value);
    while ((i64)seen >= (i64)units) {
      const u64 before = atomicCAS(&value, seen, seen - units);
      if (before == seen) return true;
      seen = before;
    }
    return false;
  }

  // Takes units. Returns false if there are none, and `grow()`, which brings some and returns how
  // many, brings none; or once `other()` is true, so that units are no longer needed.
  //
  // One thread in `batch` units that are lacking grows, the one whose units begin a new batch; and
  // any that finds no other one at it. There are none to bring if one finds none while no other
  // was at it; then all that wait give up.
  template <class F, class G>
  __device__ bool acquire(u64 units, u64 batch, F grow, G other) {
    const u64 seen = load(&failures);
    const i64 before =
        units == 1 ? (i64)add_together(&value, -1) : (i64)atomicAdd(&value, -units);
    u64 lacking = units - least(units, before);
    if (lacking == 0) return true;
    const u64 waiting = before < 0 ? (u64)-before : 0;
    u64 due = batch * (batches(waiting + lacking, batch) - batches(waiting, batch));
    u64 number = load(&begun), at_it = due ? add_together(&orders, 1) : 0;
    bool gave_up = false, helped;
    Wait wait;
    while (true) {
      lacking -= claim(lacking);
      helped = lacking && other();
      if (due) {
        add_together(&begun, 1);
        while (due && lacking && !helped) {
          const u64 brought = grow();
          if (brought == 0) break;
          due -= due < brought ? due : brought;
        }
        const bool none = due && lacking && !helped && at_it == 0 && load(&begun) == number + 1;
        if (none) add_together(&failures, 1);
        add_together(&orders, -1);
        due = 0;
        if (lacking && !helped) {
          lacking -= claim(lacking);
          helped = lacking && other();
        }
      }
      if (lacking == 0 || helped || gave_up) break;
      gave_up = load(&failures) != seen;
      if (gave_up) continue;  // having looked once more
      wait();
      number = load(&begun);
      if (load(&orders) == 0 && atomicCAS(&orders, 0ull, 1ull) == 0) {
        due = batch;
        at_it = 0;
      }
    }
    if (lacking == 0) return true;
    const u64 missing = withdraw(lacking);
    if (missing == 0 && !helped) return true;
    if (units > missing) release(units - missing);
    return false;
  }

 private:
  __device__ static u64 least(u64 units, i64 most) {
    return most <= 0 ? 0 : (u64)most < units ? (u64)most : units;
  }
  __device__ static u64 batches(u64 units, u64 batch) { return (units + batch - 1) / batch; }

  // Takes up to so many grants; a moment below zero only makes others ask again.
  __device__ u64 claim(u64 wanted) {
    if ((i64)load(&grants) <= 0) return 0;
    const i64 before = wanted == 1 ? (i64)add_together(&grants, -1)
                                   : (i64)atomicAdd(&grants, -wanted);
    const u64 got = least(wanted, before);
    if (got < wanted) {
      if (wanted == 1) {
        add_together(&grants, 1);
      } else {
        atomicAdd(&grants, wanted - got);
      }
    }
    return got;
  }

  // Stops waiting for units, but takes those that it is granted first; returns how many it was not.
  // It may leave without only while units are lacking. Else each thread that waits has a grant, or is
  // about to get one: if it left, that grant would give another thread a unit that there is not.
  __device__ u64 withdraw(u64 units) {
    u64 missing = 0;
    Wait wait;
    while (true) {
      units -= claim(units);
      if (units == 0) return missing;
      const i64 seen = (i64)load(&value);
      u64 left = 0;
      if (seen >= 0) {
        wait();
      } else if (units > 1) {
        left = least(units, -seen);
        if ((i64)atomicCAS(&value, seen, seen + left) != seen) left = 0;
      } else {
        const Peers peers((u64)&value);
        u32 leaving = 0;
        if (peers.leads()) {
          leaving = (u32)least(peers.count, -seen);
          if ((i64)atomicCAS(&value, seen, seen + leaving) != seen) leaving = 0;
        }
        left = peers.rank < peers.from_leader(leaving);
      }
      missing += left;
      units -= left;
    }
  }
};

}  // namespace ouroboros
