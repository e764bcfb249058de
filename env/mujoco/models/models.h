#pragma once

#include <string>

namespace troupe::env::gym_models {

/// MJCF of the Gymnasium tasks, written from tables of our own. Compiled by MuJoCo 3.6.0 they equal Gymnasium's models
/// in every number that the simulation reads; names of bodies, joints and geoms are Gymnasium's too
/// (tests/env/golden_env_test.cpp compares). Nothing is in them for the eye: no textures, lights or cameras.
std::string half_cheetah();
std::string ant();
std::string hopper();
/// The friction of the right foot is 1.9 in v5 and was 0.9, by mistake, in v4; the left one's is 1.9 in both.
std::string walker2d(double right_foot_friction);
std::string humanoid();
std::string swimmer();
std::string reacher();
/// v5 only: v4's model does not load with MuJoCo 3.
std::string pusher();
std::string inverted_pendulum();
std::string inverted_double_pendulum();

}  // namespace troupe::env::gym_models
