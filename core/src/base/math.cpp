// See math.h.
#include "base/math.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace servecast {
namespace {

std::uint64_t Bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

double FromBits(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// ln 2 in two parts: the high one has 32 trailing zero bits, so k * kLn2High is exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;

template <int kCount>
double Polynomial(const double (&coefficients)[kCount], double x) {
  double sum = coefficients[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace

// x = 2^k * m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m-1)/(m+1), by the minimax
// polynomial of fdlibm's e_log.c (Sun Microsystems, 1993).
double Log(double x) {
  std::uint64_t bits = Bits(x);
  std::int64_t k = static_cast<std::int64_t>(bits >> 52) - 1023;
  bits = (bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
  double m = FromBits(bits);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++k;
  }
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  static constexpr double kEven[] = {6.666666666666735130e-01, 2.857142874366239149e-01,
                                     1.818357216161805012e-01, 1.479819860511658591e-01};
  static constexpr double kOdd[] = {3.999999999940941908e-01, 2.222219843214978396e-01,
                                    1.531383769920937332e-01};
  const double w = z * z;
  const double r = z * Polynomial(kEven, w) + w * Polynomial(kOdd, w);
  const double half_square = 0.5 * f * f;
  const auto dk = static_cast<double>(k);
  return dk * kLn2High - ((half_square - (s * (half_square + r) + dk * kLn2Low)) - f);
}

// x = k ln 2 + r, |r| <= ln2 / 2; e^r by the rational form of fdlibm's e_exp.c.
double Exp(double x) {
  const double scaled = x * 1.44269504088896338700e+00;
  const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const auto dk = static_cast<double>(k);
  const double high = x - dk * kLn2High;
  const double low = dk * kLn2Low;
  const double r = high - low;
  const double t = r * r;
  static constexpr double kP[] = {1.66666666666666019037e-01, -2.77777777770155933842e-03,
                                  6.61375632143793436117e-05, -1.65339022054652515390e-06,
                                  4.13813679705723846039e-08};
  const double c = r - t * Polynomial(kP, t);
  const double y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
  // Two factors, since 2^k alone may leave the range of normal numbers.
  const std::int64_t half = k / 2;
  const double scale_a = FromBits(static_cast<std::uint64_t>(1023 + half) << 52);
  const double scale_b = FromBits(static_cast<std::uint64_t>(1023 + (k - half)) << 52);
  return y * scale_a * scale_b;
}

double NormalQuantile(double p) {
  static constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                  1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                  4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kB[] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  static constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                  5.76949722146069140550e0,  3.64784832476320460504e0,
                                  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                  1.78482653991729133580e0,  2.96560571828504891230e-1,
                                  2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kF[] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kA, r) / Polynomial(kB, r);
  }
  double r = std::sqrt(-Log(q < 0 ? p : 1.0 - p));
  double x;
  if (r <= 5.0) {
    r -= 1.6;
    x = Polynomial(kC, r) / Polynomial(kD, r);
  } else {
    r -= 5.0;
    x = Polynomial(kE, r) / Polynomial(kF, r);
  }
  return q < 0 ? -x : x;
}

double NormalCdf(double x) {
  static constexpr double kAbove[] = {220.206867912376,    221.213596169931, 112.079291497871,
                                      33.912866078383,     6.37396220353165, 0.700383064443688,
                                      3.52624965998911e-02};
  static constexpr double kBelow[] = {440.413735824752, 793.826512519948,    637.333633378831,
                                      296.564248779674, 86.7807322029461,    16.064177579207,
                                      1.75566716318264, 8.83883476483184e-02};
  const double size = std::fabs(x);
  double tail = 0;
  if (size < 7.07106781186547) {
    tail = Exp(-0.5 * size * size) * Polynomial(kAbove, size) / Polynomial(kBelow, size);
  } else if (size < 37) {
    double fraction = size + 0.65;
    for (int i = 4; i >= 1; --i) fraction = size + i / fraction;
    tail = Exp(-0.5 * size * size) / fraction / 2.506628274631;
  }
  return x > 0 ? 1 - tail : tail;
}

// Folded to a quarter turn on either side of 0, then Taylor: the next term is below 1e-17.
double SinOfTurns(double turns) {
  double r = turns - std::nearbyint(turns);
  if (r > 0.25) r = 0.5 - r;
  if (r < -0.25) r = -0.5 - r;
  const double x = r * 6.283185307179586;
  const double z = x * x;
  double sum = 1;
  for (double n = 22; n >= 2; n -= 2) sum = 1 - sum * z / (n * (n + 1));
  return x * sum;
}

// Stirling's series at x + n >= 10; Gamma(x) = Gamma(x + n) / (x (x + 1) ... (x + n - 1)).
double LogGamma(double x) {
  double product = 1;
  for (; x < 10; x += 1) product *= x;
  static constexpr double kSeries[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188};
  const double z = 1 / x;
  return (x - 0.5) * Log(x) - x + 0.9189385332046727 + z * Polynomial(kSeries, z * z) -
         Log(product);
}

}  // namespace servecast
