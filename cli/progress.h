// How far a command is, on a terminal's stderr: after half a second, with the time that is left,
// and wiped when it ends. Elsewhere nothing.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace servecast {

// Where progress goes instead, at most ten times a second, once half a second has passed.
void ReportProgress(std::function<void(double done, const std::string& of)> to);

class Progress {
 public:
  Progress();
  ~Progress() { Wipe(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done`: of 1; `of`: what is counted, such as "12 of 40 points"; may be empty.
  void Show(double done, const std::string& of = "");
  // Before anything else goes to the terminal.
  void Wipe();

  double Seconds() const;  // since it was made

 private:
  std::chrono::steady_clock::time_point begin_, shown_;
  bool terminal_ = false, visible_ = false;
};

// " 43 %, 12 s left": what is shown. Without a time where nothing is done yet.
std::string ProgressText(double done, double seconds, const std::string& of);

// Takes a run to its end in slices.
template <class Run>
void RunThrough(Run& run, Progress& progress) {
  while (!run.Advance(1'000'000)) progress.Show(run.Progress());
  progress.Wipe();
}
template <class Run>
void RunThrough(Run& run) {
  Progress progress;
  RunThrough(run, progress);
}

}  // namespace servecast
