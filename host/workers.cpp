#include "host/workers.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace servecast {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

struct Worker {
  pid_t process = -1;
  std::unique_ptr<std::FILE, CloseFile> lines;
};

// All of it; false: nobody reads any more.
bool WriteAll(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return true;
}

// A line with its break; "" at the end, or of one that is cut short.
std::string ReadLine(std::FILE* file) {
  std::string line;
  for (int c = std::getc(file); c != EOF; c = std::getc(file)) {
    line += static_cast<char>(c);
    if (c == '\n') return line;
  }
  return "";
}

// Without a process where the system gives no more.
Worker Begin(const std::function<bool(int)>& work) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::fflush(nullptr);  // else the copy writes it, too
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    _exit(work(ends[1]) ? 0 : 1);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return {};
  }
  return {process, std::unique_ptr<std::FILE, CloseFile>(fdopen(ends[0], "r"))};
}

}  // namespace

#ifdef __EMSCRIPTEN__
std::size_t Cores() { return 1; }  // there is no fork()
#else
std::size_t Cores() { return std::max(1U, std::thread::hardware_concurrency()); }
#endif

bool InOrder(std::size_t count, std::size_t workers,
             const std::function<std::string(std::size_t)>& make,
             const std::function<void(const std::string&)>& take) {
  workers = std::min(workers, count);
  std::vector<Worker> all;
  for (std::size_t i = 0; workers > 1 && i < workers; ++i) {
    all.push_back(Begin([&](int out) {
      for (std::size_t index = i; index < count; index += workers) {
        if (!WriteAll(out, make(index))) return false;
      }
      return true;
    }));
  }
  bool good = true;
  for (std::size_t index = 0; index < count && good; ++index) {
    Worker* worker = all.empty() ? nullptr : &all[index % workers];
    const bool own = worker == nullptr || worker->process < 0;
    const std::string line = own ? make(index) : ReadLine(worker->lines.get());
    good = !line.empty();
    if (good) take(line);
  }
  for (Worker& worker : all) {
    worker.lines.reset();  // one that still writes ends
    if (worker.process > 0) waitpid(worker.process, nullptr, 0);
  }
  return good;
}

}  // namespace servecast
