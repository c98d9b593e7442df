// Where along a line a curve that grows passes 1, from as few places as will do. Knows nothing of
// simulations: it is given what was found and says where to look next.
#pragma once

#include <optional>
#include <vector>

#include "plan/line.h"

namespace servecast {

// A place and what was found there; the curve may be infinite.
struct Sample {
  double at = 0;
  double strain = 0;
};

// Strain grows from the light end of a line to its heavy end.
class Slope {
 public:
  explicit Slope(const Line& line) : line_(line) {}

  // How far along: ascending from light to heavy, in logarithms of `at`.
  double Along(double at) const;
  // The nearest place of the line to it.
  double PlaceAt(double along) const;
  bool Lighter(double a, double b) const { return line_.relieves ? a > b : a < b; }
  double lightest() const { return line_.relieves ? line_.most : line_.least; }
  double heaviest() const { return line_.relieves ? line_.least : line_.most; }
  const Line& line() const { return line_; }

 private:
  Line line_;
};

// Doubling, then halving (by ratio), from the line's own place until two places are less than
// `ratio` apart, or neighbours, of which the lighter has a strain of at most 1 and the heavier
// more; or until an end of the line is reached. nullopt: no more to ask. `samples`: from light to
// heavy. The first step goes by `first_step`, those after it as far as all before them.
std::optional<double> NextScout(const Slope& slope, const std::vector<Sample>& samples,
                                double ratio, double first_step = 2);

// Over samples that are a factor of 1.9 or more apart and all have more than 1, finite, the strain
// falls so slowly that a load 16 times as light as the lightest of them would have more, too; or
// they are as far apart as that, or, some of them infinite, 30 times.
bool Hopeless(const Slope& slope, const std::vector<Sample>& samples);

// The last place up to the first with more than 1, as an index into samples; -1: the first has
// more.
int LastWithin(const std::vector<Sample>& samples);

// Where the next sample tells most about where the strain passes 1: nullopt once two neighbours
// around it are close enough to go straight (in logarithms) from one to the other, or at an end.
// `growth`: of log strain along the line, where one sample alone is known. `straight`: between two
// places with finite strains, in logarithms.
std::optional<double> NextSample(const Slope& slope, const std::vector<Sample>& samples,
                                 double growth = 3, double straight = 0.07);

// Where it passes 1; where a neighbour is infinite, between them. Beyond all samples: the end one.
// On a line of whole places the last one within. Requires: samples not empty.
double CrossingOf(const Slope& slope, const std::vector<Sample>& samples);

// Growth of log strain along the line, between the finite samples next to where it passes 1;
// nullopt: there are no two.
std::optional<double> GrowthAround(const Slope& slope, const std::vector<Sample>& samples);

}  // namespace servecast
