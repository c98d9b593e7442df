// See process.h.
#include "host/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <utility>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "base/printable.h"
#include "host/files.h"
#include "host/output_file.h"

namespace servecast {
namespace {

namespace fs = std::filesystem;

// A signal's handler: nothing here may allocate.
void Say(std::string_view sentence) {
  while (!sentence.empty()) {
    const ssize_t written = write(STDERR_FILENO, sentence.data(), sentence.size());
    if (written <= 0) return;
    sentence.remove_prefix(static_cast<std::size_t>(written));
  }
}

#ifdef __EMSCRIPTEN__
// node answers them: cmake/node_command.js.
void AnswerSignals() {}
#else
// No exit of ours for a bug is silent, whatever ended the program.
void SayBug(int signal) {
  Say("servecast: stopped by a bug of servecast (");
  Say(signal == SIGABRT   ? "SIGABRT, abort"
      : signal == SIGSEGV ? "SIGSEGV, bad memory access"
      : signal == SIGBUS  ? "SIGBUS, bad memory access"
      : signal == SIGFPE  ? "SIGFPE, bad arithmetic"
                          : "SIGILL, illegal instruction");
  Say("); please report it with this command and its files\n");
}

void AnswerSignals() {
  // A broken invariant aborts with its rule on stderr; the shell sees our exit code for a bug.
  for (const int bug : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(bug, [](int signal) {
      SayBug(signal);
      RemoveUnfinishedFiles();
      std::_Exit(kBug);
    });
  }
  for (const int end : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    const auto before = std::signal(end, [](int signal) {
      RemoveUnfinishedFiles();
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    });
    if (before == SIG_IGN) std::signal(end, SIG_IGN);  // as with nohup
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large cannot be written, and says so
}
#endif

void AnswerOutOfMemory() {
  std::set_new_handler([] {
    constexpr std::string_view kSentence =
        "servecast: out of memory: what was asked for takes more than this process may have\n";
    Say(kSentence);
    RemoveUnfinishedFiles();
    std::_Exit(kBadInput);
  });
}

#ifndef __EMSCRIPTEN__
// The folder of this program, links resolved; empty when the system does not tell.
fs::path OwnFolder() {
  std::error_code error;
#ifdef __APPLE__
  char name[4096];
  std::uint32_t size = sizeof(name);
  if (_NSGetExecutablePath(name, &size) != 0) return {};
  const fs::path self = fs::canonical(name, error);
#else
  const fs::path self = fs::canonical("/proc/self/exe", error);
#endif
  return error ? fs::path() : self.parent_path();
}
#endif

}  // namespace

int RunProgram(int argc, char** argv, const std::function<int(std::vector<std::string>)>& command) {
  AnswerSignals();
  AnswerOutOfMemory();
  const int code = command(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "standard output cannot be written\n");
  return kBadInput;
}

#ifdef __EMSCRIPTEN__
int BecomeProgramBeside(const std::string& name, const std::vector<std::string>& /*arguments*/) {
  fmt::print(stderr, "servecast: {} is a part of the native command only\n",
             name.substr(name.find('-') + 1));
  return kBadInput;
}
#else
int BecomeProgramBeside(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string path = (OwnFolder() / name).string();
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), name);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  const int error = errno;
  const std::string part = name.substr(name.find('-') + 1);  // of ./dev build
  fmt::print(stderr, "servecast: {} cannot be run: {}\n", Printable(path),
             error == ENOENT ? "it is not there, and ./dev build " + part + " makes it"
                             : std::strerror(error));
  return kBadInput;
}
#endif

}  // namespace servecast
