// What functors of users are made of: numbers with Numba's types, arrays with checked places, atomics.
// A fault ends the run with an error; a thread keeps the first that it meets.
#pragma once
#include "grid.cuh"

#define DIVISOR 1  // a divisor of 0
#define OUTSIDE 2  // a place outside an array
#define ABSENT 3   // a vertex of a frontier that is none
#define INLINE __device__ __forceinline__

// Types of numbers: what they are in arithmetic, with what bits integers wrap around, and in quotients.
template <class T>
struct Number {
  typedef T type, bits, real;
  static constexpr bool whole = false;
};
template <>
struct Number<i64> {
  typedef i64 type;
  typedef u64 bits;
  typedef double real;
  static constexpr bool whole = true;
};
template <>
struct Number<u64> : Number<i64> {
  typedef u64 type;
};
template <>
struct Number<u32> : Number<u64> {};
template <>
struct Number<bool> : Number<i64> {};
template <>
struct Number<int> : Number<i64> {};

// The type of one of two numbers: a truth value gives way to a number, others to doubles.
template <class A, class B>
struct Join {
  typedef double type;
};
template <class A>
struct Join<A, A> {
  typedef A type;
};
template <class A>
struct Join<A, bool> {
  typedef typename Number<A>::type type;
};
template <class A>
struct Join<bool, A> : Join<A, bool> {};
template <>
struct Join<bool, bool> {
  typedef bool type;
};
// The same in arithmetic and comparisons, where unsigned integers give way to signed ones and to truth.
template <class A, class B>
struct Mix : Join<A, B> {};

#define RULE(Way, A, B, T)          \
  template <>                       \
  struct Way<A, B> {                \
    typedef T type;                 \
  };                                \
  template <>                       \
  struct Way<B, A> : Way<A, B> {};
RULE(Join, u32, bool, u32)
RULE(Join, u32, i64, i64)
RULE(Join, u32, u64, u64)
RULE(Mix, u32, bool, i64)
RULE(Mix, u64, bool, i64)
RULE(Mix, u64, i64, i64)
#undef RULE
template <class A, class B>
using Joined = typename Join<A, B>::type;

INLINE bool fails(bool wrong, int kind, int& fault) {
  if (wrong && !fault) fault = kind;
  return wrong;
}

template <class T>
INLINE bool minus_one(T b) {
  return T(-1) < T(0) && b == T(-1);
}

// In `expression`, a and b are the operands in their common type T, N its type in arithmetic.
#define OPERATION(name, integers, expression) OPERATION_AS(Mix, name, integers, expression)
#define OPERATION_AS(Way, name, integers, expression)                                            \
  template <class A, class B>                                                                    \
  INLINE auto name(A one, B other, int& fault) {                                                 \
    typedef typename Way<A, B>::type T;                                                          \
    typedef typename Number<T>::type N;                                                          \
    typedef typename Number<T>::bits Bits;                                                       \
    typedef typename Number<T>::real Real;                                                       \
    static_assert(Number<T>::whole || !integers, #name " takes integers only on a device");      \
    const T a = T(one), b = T(other);                                                            \
    (void)sizeof(Bits), (void)sizeof(Real), (void)sizeof(N);                                     \
    return expression;                                                                           \
  }
OPERATION(add, false, N(Bits(a) + Bits(b)))
OPERATION(subtract, false, N(Bits(a) - Bits(b)))
OPERATION(times, false, N(Bits(a) * Bits(b)))
OPERATION(divide, false, fails(b == 0, DIVISOR, fault) ? Real(0) : Real(a) / Real(b))
// The least integer has no opposite: divided by -1 it is 0, as by Numba.
OPERATION(floor_divide, true, fails(b == 0, DIVISOR, fault) ? N(0) : minus_one(b) ? N(N(0 - Bits(a)) == a ? 0 : 0 - Bits(a))
                              : N(a / b - (a % b != 0 && (a ^ b) < 0)))
OPERATION(modulo, true, fails(b == 0, DIVISOR, fault) || minus_one(b) ? N(0)
                        : N(a % b + (a % b != 0 && (a ^ b) < 0 ? b : 0)))
OPERATION(bit_and, true, T(a & b))
OPERATION(bit_or, true, T(a | b))
OPERATION(bit_xor, true, T(a ^ b))
OPERATION(equal, false, a == b)
OPERATION(differs, false, a != b)
OPERATION(less, false, a < b)
OPERATION(at_most, false, a <= b)
OPERATION(more, false, a > b)
OPERATION(at_least, false, a >= b)
OPERATION_AS(Join, minimum, false, b < a ? b : a)
OPERATION_AS(Join, maximum, false, b > a ? b : a)

// Compares integers whatever their signs: how a is to b, −1, 0 or 1.
INLINE int order(u64 a, i64 b) { return b < 0 || a > u64(b) ? 1 : a < u64(b) ? -1 : 0; }
#define COMPARISON(name, sign)                                                     \
  INLINE bool name(u64 a, i64 b, int&) { return order(a, b) sign 0; }              \
  INLINE bool name(i64 a, u64 b, int&) { return 0 sign order(b, a); }
COMPARISON(equal, ==)
COMPARISON(differs, !=)
COMPARISON(less, <)
COMPARISON(at_most, <=)
COMPARISON(more, >)
COMPARISON(at_least, >=)
#undef COMPARISON

INLINE u64 negative(u32 a) { return 0u - a; }
template <class T>
INLINE auto negative(T a) {
  return typename Number<T>::type(-typename Number<T>::bits(a));
}
template <class T>
INLINE auto absolute(T a) {
  typedef typename Number<T>::bits Bits;
  return typename Number<T>::type(a > T(0) ? Bits(a) : Bits(0) - Bits(a));
}
template <class T>
INLINE auto real(T a) {
  return typename Number<T>::real(a);
}
template <class T>
INLINE i64 whole(T a) {
  return i64(a);
}
INLINE u32 whole(u32 a) { return a; }
INLINE u64 whole(u64 a) { return a; }
INLINE double infinity() {
  const u64 bits = 0x7FF0000000000000ull;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
INLINE bool truth_alone(T a) {
  static_assert(sizeof(T) == 1, "and, or of numbers are conditions only on a device");
  return a;
}
template <class A, class B>
INLINE auto choose(bool first, A a, B b) {
  typedef Joined<decltype(a()), decltype(b())> T;
  return first ? T(a()) : T(b());
}

template <class T>
struct Array {
  T* data;
  i64 length;

  // Whether place i is in the array; places below 0 count from the end.
  INLINE bool holds(i64& i, int& fault) const {
    if (i < 0) i += length;
    return !fails(i < 0 || i >= length, OUTSIDE, fault);
  }
  template <class I>
  INLINE Joined<T, bool> get(I at, int& fault) const {
    static_assert(Number<I>::whole, "places in arrays must be integers");
    i64 i = i64(at);
    return holds(i, fault) ? data[i] : T(0);
  }
  template <class I, class V>
  INLINE void set(I at, V value, int& fault) const {
    static_assert(Number<I>::whole, "places in arrays must be integers");
    static_assert(Number<V>::whole || !Number<T>::whole, "an array of integers takes no float");
    i64 i = i64(at);
    if (holds(i, fault)) data[i] = T(value);
  }
};

// Replaces *at by a float of the same bits as B, while that is less, or more.
template <class B, class T>
INLINE T replace(T* at, T value, bool less) {
  static_assert(sizeof(B) == sizeof(T), "bits of a number");
  B seen = *(volatile B*)at, wanted;
  memcpy(&wanted, &value, sizeof value);
  while (true) {
    T old;
    memcpy(&old, &seen, sizeof old);
    if (!(less ? value < old : value > old)) return old;
    const B before = atomicCAS((B*)at, seen, wanted);
    if (before == seen) return old;
    seen = before;
  }
}

struct Sum {
  template <class T>
  static INLINE T whole(T* at, T value) {
    return atomicAdd(at, value);
  }
  static INLINE i64 whole(i64* at, i64 value) { return i64(atomicAdd((u64*)at, u64(value))); }
  template <class T, class V>
  static INLINE T of(T* at, V value, int&) {
    return whole(at, T(value));
  }
};
template <bool LESS>
struct Extreme {
  template <class T>
  static INLINE T whole(T* at, T value) {
    return LESS ? atomicMin(at, value) : atomicMax(at, value);
  }
  static INLINE float whole(float* at, float value) { return replace<u32>(at, value, LESS); }
  static INLINE double whole(double* at, double value) { return replace<u64>(at, value, LESS); }
  // The value given decides, not what is left of it in the type of the array.
  template <class T, class V>
  static INLINE T of(T* at, V value, int& fault) {
    const T old = *at;
    if (!(LESS ? less(value, old, fault) : more(value, old, fault))) return old;
    return whole(at, T(value));
  }
};
typedef Extreme<true> Least;
typedef Extreme<false> Most;

// Changes an entry atomically; returns what it was, 0 outside the array.
template <class Way, class T, class I, class V>
INLINE Joined<T, bool> change(const Array<T>& array, I at, V value, int& fault) {
  static_assert(Number<I>::whole, "places in arrays must be integers");
  static_assert(Number<V>::whole || !Number<T>::whole, "an array of integers takes no float");
  i64 i = i64(at);
  return array.holds(i, fault) ? Way::of(array.data + i, value, fault) : T(0);
}
