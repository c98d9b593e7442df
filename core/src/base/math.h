// Logarithm, exponential and normal quantile whose bits are the same on every platform: the C
// libraries of native and WebAssembly builds differ in the last bit, and one such bit would give
// the page other requests than the command. Built from + - * / and bit patterns alone; needs
// -ffp-contract=off. sqrt is IEEE-exact everywhere and stays the library's.
#pragma once

namespace servecast {

// Natural logarithm, within 1 ulp. Requires: x > 0, finite and normal.
double Log(double x);

// e^x, within 1 ulp. Requires: |x| <= 700.
double Exp(double x);

// The x with P(Z <= x) = p for standard normal Z; relative error below 1e-15.
// Algorithm AS 241 (PPND16), Wichura, Applied Statistics 37 (1988). Requires: 0 < p < 1.
double NormalQuantile(double p);

// The nearest integer, the even one of two. As std::nearbyint, without the call that it is where a
// processor may lack the instruction. Requires: |x| <= 2^51.
inline double RoundHalfEven(double x) {
  constexpr double kNoFraction = 0x1.8p52;  // doubles of this size are whole
  return (x + kNoFraction) - kNoFraction;
}

// P(Z <= x) for standard normal Z, within 1e-15: Hart's algorithm 5666 as in West, "Better
// approximations to cumulative normal functions", Wilmott Magazine (2005). Requires: finite.
double NormalCdf(double x);

// sin(2 pi turns), within 1e-15. Requires: |turns| < 2^52.
double SinOfTurns(double turns);

// Logarithm of the gamma function, relative error of e^it below 1e-13. Requires: 0 < x < 1e6.
double LogGamma(double x);

}  // namespace servecast
