// Text as a shell would cut it into commands of words: quotes, continued lines, comments, and the
// variables that it sets itself. No shell: nothing is run, and what needs one stays as it is.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servecast {

using CommandWords = std::vector<std::string>;
// Whether the name of a variable may have it.
bool IsName(char c);

using Variables = std::map<std::string, std::string, std::less<>>;

// Commands of one word are left out: nothing is imported from them. What stands in one word behind
// -c, or of --wrap, is cut again. Redirections are no words. Bash's arrays and sums ("$((A * 2))")
// are put in where the text, or `known`, says all that is in them; what it does not say stays as it
// is written, in one word. CUDA_VISIBLE_DEVICES set before a command stays its first word, as it
// says which GPUs that command has. O(size); a variable's value is cut at 1,000 bytes.
std::vector<CommandWords> CommandsIn(std::string_view text, const Variables& known = {});

// Values of loops' variables by their names, "for NAME in 1 2 4"; of one with values that nothing
// says, none.
std::map<std::string, CommandWords> LoopsIn(std::span<const CommandWords> commands);

// What a text sets in the environment of what it starts, each variable's last value: NAME=value
// before a command or alone, exported, behind env and docker's -e; in comments nothing. As
// CommandsIn reads.
Variables AssignedIn(std::string_view text);

// "/usr/bin/vllm" is vllm.
std::string_view BaseName(std::string_view path);

// Lines without what ends them.
std::vector<std::string_view> LinesIn(std::string_view text);

// Without white space around it.
std::string_view Stripped(std::string_view text);

}  // namespace servecast
