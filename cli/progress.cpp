// See progress.h.
#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace servecast {
namespace {

constexpr double kSilentSeconds = 0.5, kSecondsBetween = 0.1;

std::string LeftText(double seconds) {
  const double whole = std::ceil(seconds);
  if (whole < 100) return fmt::format("{:.0f} s left", whole);
  const double minutes = std::ceil(seconds / 60);
  return minutes < 100 ? fmt::format("{:.0f} min left", minutes)
                       : fmt::format("{:.0f} h left", std::ceil(seconds / 3600));
}

std::function<void(double, const std::string&)>& Reported() {
  static std::function<void(double, const std::string&)> to;
  return to;
}

}  // namespace

void ReportProgress(std::function<void(double done, const std::string& of)> to) {
  Reported() = std::move(to);
}

std::string ProgressText(double done, double seconds, const std::string& of) {
  const double share = std::clamp(done, 0.0, 1.0);
  std::string text = fmt::format("{:3.0f} %", std::floor(100 * share));
  if (!of.empty()) text += ", " + of;
  if (share > 0.01) text += ", " + LeftText(seconds * (1 - share) / share);
  return text;
}

Progress::Progress()
    : begin_(std::chrono::steady_clock::now()),
      shown_(begin_),
      terminal_(isatty(STDERR_FILENO) != 0) {}

double Progress::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::Show(double done, const std::string& of) {
  const auto& reported = Reported();
  if ((!terminal_ && !reported) || Seconds() < kSilentSeconds) return;
  const auto now = std::chrono::steady_clock::now();
  if (visible_ && std::chrono::duration<double>(now - shown_).count() < kSecondsBetween) return;
  shown_ = now;
  visible_ = true;
  if (reported) return reported(std::clamp(done, 0.0, 1.0), of);
  fmt::print(stderr, "\r\033[K{}", ProgressText(done, Seconds(), of));
  std::fflush(stderr);
}

void Progress::Wipe() {
  if (visible_ && !Reported()) fmt::print(stderr, "\r\033[K");
  visible_ = false;
}

}  // namespace servecast
