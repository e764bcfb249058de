#include "tests/env/mujoco/model_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace troupe::testing {
namespace {

using nlohmann::json;

json numbers(const mjtNum* values, int count) { return std::vector<double>(values, values + count); }

std::string name_of(const mjModel& m, mjtObj type, int id) {
  const char* name = mj_id2name(&m, type, id);
  return name == nullptr ? "" : name;
}

std::string text_of(const std::map<int, std::string>& names, int value) {
  const auto found = names.find(value);
  return found == names.end() ? std::to_string(value) : found->second;
}

const std::map<int, std::string> kJoints = {
    {mjJNT_FREE, "mjJNT_FREE"}, {mjJNT_BALL, "mjJNT_BALL"}, {mjJNT_SLIDE, "mjJNT_SLIDE"}, {mjJNT_HINGE, "mjJNT_HINGE"}};
const std::map<int, std::string> kGeoms = {{mjGEOM_PLANE, "mjGEOM_PLANE"},       {mjGEOM_SPHERE, "mjGEOM_SPHERE"},
                                           {mjGEOM_CAPSULE, "mjGEOM_CAPSULE"},   {mjGEOM_ELLIPSOID, "mjGEOM_ELLIPSOID"},
                                           {mjGEOM_CYLINDER, "mjGEOM_CYLINDER"}, {mjGEOM_BOX, "mjGEOM_BOX"}};
const std::map<int, std::string> kIntegrators = {{mjINT_EULER, "mjINT_EULER"}, {mjINT_RK4, "mjINT_RK4"}};
const std::map<int, std::string> kSolvers = {
    {mjSOL_PGS, "mjSOL_PGS"}, {mjSOL_CG, "mjSOL_CG"}, {mjSOL_NEWTON, "mjSOL_NEWTON"}};
const std::map<int, std::string> kCones = {{mjCONE_PYRAMIDAL, "mjCONE_PYRAMIDAL"},
                                           {mjCONE_ELLIPTIC, "mjCONE_ELLIPTIC"}};
const std::map<int, std::string> kJacobians = {
    {mjJAC_DENSE, "mjJAC_DENSE"}, {mjJAC_SPARSE, "mjJAC_SPARSE"}, {mjJAC_AUTO, "mjJAC_AUTO"}};
const std::map<int, std::string> kTransmissions = {
    {mjTRN_JOINT, "mjTRN_JOINT"}, {mjTRN_TENDON, "mjTRN_TENDON"}, {mjTRN_SITE, "mjTRN_SITE"}};

json sizes(const mjModel& m) {
  return {{"nq", m.nq},
          {"nv", m.nv},
          {"nu", m.nu},
          {"na", m.na},
          {"nbody", m.nbody},
          {"njnt", m.njnt},
          {"ngeom", m.ngeom},
          {"nsite", m.nsite},
          {"ntendon", m.ntendon},
          {"nwrap", m.nwrap},
          {"neq", m.neq},
          {"npair", m.npair},
          {"nexclude", m.nexclude},
          {"nsensor", m.nsensor},
          {"nmocap", m.nmocap}};
}

json option(const mjModel& m) {
  const mjOption& o = m.opt;
  return {{"timestep", o.timestep},
          {"integrator", text_of(kIntegrators, o.integrator)},
          {"solver", text_of(kSolvers, o.solver)},
          {"cone", text_of(kCones, o.cone)},
          {"jacobian", text_of(kJacobians, o.jacobian)},
          {"iterations", o.iterations},
          {"tolerance", o.tolerance},
          {"ls_iterations", o.ls_iterations},
          {"ls_tolerance", o.ls_tolerance},
          {"noslip_iterations", o.noslip_iterations},
          {"gravity", numbers(o.gravity, 3)},
          {"density", o.density},
          {"viscosity", o.viscosity},
          {"wind", numbers(o.wind, 3)},
          {"impratio", o.impratio},
          {"disableflags", o.disableflags},
          {"enableflags", o.enableflags},
          {"ccd_iterations", o.ccd_iterations},
          {"ccd_tolerance", o.ccd_tolerance}};
}

json body(const mjModel& m, int i) {
  return {{"id", i},
          {"name", name_of(m, mjOBJ_BODY, i)},
          {"parent", m.body_parentid[i]},
          {"pos", numbers(m.body_pos + 3 * i, 3)},
          {"quat", numbers(m.body_quat + 4 * i, 4)},
          {"mass", m.body_mass[i]},
          {"ipos", numbers(m.body_ipos + 3 * i, 3)},
          {"iquat", numbers(m.body_iquat + 4 * i, 4)},
          {"inertia", numbers(m.body_inertia + 3 * i, 3)},
          {"gravcomp", m.body_gravcomp[i]},
          {"invweight0", numbers(m.body_invweight0 + 2 * i, 2)}};
}

json joint(const mjModel& m, int i) {
  const int q = m.jnt_qposadr[i], v = m.jnt_dofadr[i];
  const int nq = (i + 1 < m.njnt ? m.jnt_qposadr[i + 1] : static_cast<int>(m.nq)) - q,
            nv = (i + 1 < m.njnt ? m.jnt_dofadr[i + 1] : static_cast<int>(m.nv)) - v;
  return {{"id", i},
          {"name", name_of(m, mjOBJ_JOINT, i)},
          {"type", text_of(kJoints, m.jnt_type[i])},
          {"body", m.jnt_bodyid[i]},
          {"pos", numbers(m.jnt_pos + 3 * i, 3)},
          {"axis", numbers(m.jnt_axis + 3 * i, 3)},
          {"limited", int{m.jnt_limited[i]}},
          {"range", numbers(m.jnt_range + 2 * i, 2)},
          {"stiffness", m.jnt_stiffness[i]},
          {"damping", numbers(m.dof_damping + v, nv)},
          {"armature", numbers(m.dof_armature + v, nv)},
          {"frictionloss", numbers(m.dof_frictionloss + v, nv)},
          {"margin", m.jnt_margin[i]},
          {"solref_limit", numbers(m.jnt_solref + mjNREF * i, mjNREF)},
          {"solimp_limit", numbers(m.jnt_solimp + mjNIMP * i, mjNIMP)},
          {"qposadr", q},
          {"dofadr", v},
          {"qpos0", numbers(m.qpos0 + q, nq)},
          {"qpos_spring", numbers(m.qpos_spring + q, nq)},
          {"dof_invweight0", numbers(m.dof_invweight0 + v, nv)},
          {"dof_M0", numbers(m.dof_M0 + v, nv)}};
}

json geom(const mjModel& m, int i) {
  return {{"id", i},
          {"name", name_of(m, mjOBJ_GEOM, i)},
          {"type", text_of(kGeoms, m.geom_type[i])},
          {"body", m.geom_bodyid[i]},
          {"size", numbers(m.geom_size + 3 * i, 3)},
          {"pos", numbers(m.geom_pos + 3 * i, 3)},
          {"quat", numbers(m.geom_quat + 4 * i, 4)},
          {"friction", numbers(m.geom_friction + 3 * i, 3)},
          {"contype", m.geom_contype[i]},
          {"conaffinity", m.geom_conaffinity[i]},
          {"condim", m.geom_condim[i]},
          {"priority", m.geom_priority[i]},
          {"solmix", m.geom_solmix[i]},
          {"solref", numbers(m.geom_solref + mjNREF * i, mjNREF)},
          {"solimp", numbers(m.geom_solimp + mjNIMP * i, mjNIMP)},
          {"margin", m.geom_margin[i]},
          {"gap", m.geom_gap[i]}};
}

json actuator(const mjModel& m, int i) {
  return {{"id", i},
          {"name", name_of(m, mjOBJ_ACTUATOR, i)},
          {"trntype", text_of(kTransmissions, m.actuator_trntype[i])},
          {"joint", m.actuator_trnid[2 * i]},
          {"gear", numbers(m.actuator_gear + 6 * i, 6)},
          {"ctrllimited", int{m.actuator_ctrllimited[i]}},
          {"ctrlrange", numbers(m.actuator_ctrlrange + 2 * i, 2)},
          {"forcelimited", int{m.actuator_forcelimited[i]}},
          {"forcerange", numbers(m.actuator_forcerange + 2 * i, 2)},
          {"dyntype", m.actuator_dyntype[i]},
          {"gaintype", m.actuator_gaintype[i]},
          {"biastype", m.actuator_biastype[i]},
          {"gainprm", numbers(m.actuator_gainprm + mjNGAIN * i, 3)},
          {"biasprm", numbers(m.actuator_biasprm + mjNBIAS * i, 3)}};
}

json tendon(const mjModel& m, int i) {
  json wrap = json::array();
  for (int w = m.tendon_adr[i]; w < m.tendon_adr[i] + m.tendon_num[i]; ++w) {
    wrap.push_back({{"type", m.wrap_type[w]}, {"objid", m.wrap_objid[w]}, {"prm", m.wrap_prm[w]}});
  }
  return {{"id", i},
          {"name", name_of(m, mjOBJ_TENDON, i)},
          {"wrap", wrap},
          {"stiffness", m.tendon_stiffness[i]},
          {"damping", m.tendon_damping[i]},
          {"limited", int{m.tendon_limited[i]}},
          {"range", numbers(m.tendon_range + 2 * i, 2)}};
}

json site(const mjModel& m, int i) {
  return {{"id", i},
          {"name", name_of(m, mjOBJ_SITE, i)},
          {"body", m.site_bodyid[i]},
          {"pos", numbers(m.site_pos + 3 * i, 3)},
          {"quat", numbers(m.site_quat + 4 * i, 4)}};
}

template <class Describe>
json list(const mjModel& m, mjtSize count, Describe describe) {
  json all = json::array();
  for (int i = 0; i < static_cast<int>(count); ++i) all.push_back(describe(m, i));
  return all;
}

class Comparison {
 public:
  Comparison(NumberDifference& out, double tolerance) : out_(out), tolerance_(tolerance) {}

  void compare(const std::string& path, const json& found, const json& wanted) {
    if (wanted.is_object() && found.is_object()) {
      for (const auto& [key, value] : wanted.items()) {
        if (found.contains(key))
          compare(path.empty() ? key : path + "." + key, found.at(key), value);
        else
          complain(path + "." + key + " is not compared by this test");
      }
    } else if (wanted.is_array() && found.is_array()) {
      if (wanted.size() != found.size())
        return complain(fmt::format("{} has {} entries, wanted {}", path, found.size(), wanted.size()));
      for (std::size_t i = 0; i < wanted.size(); ++i) compare(fmt::format("{}[{}]", path, i), found[i], wanted[i]);
    } else if (wanted.is_number() && found.is_number()) {
      compare_number(path, found.get<double>(), wanted.get<double>());
    } else if (wanted != found) {
      complain(fmt::format("{} is {}, wanted {}", path, found.dump(), wanted.dump()));
    }
  }

 private:
  void compare_number(const std::string& path, double found, double wanted) {
    ++out_.compared;
    if (found == wanted) {
      ++out_.equal_bits;
      return;
    }
    // inertias of 1e-13 are told apart; a zero that is 1e-17 is one
    const double relative = std::abs(found - wanted) / std::max({std::abs(wanted), std::abs(found), tolerance_});
    if (!(relative <= tolerance_)) return complain(fmt::format("{} is {:.17g}, wanted {:.17g}", path, found, wanted));
    out_.largest = std::max(out_.largest, relative);
  }
  void complain(std::string text) { out_.differences.push_back(std::move(text)); }

  NumberDifference& out_;
  double tolerance_;
};

}  // namespace

json model_numbers(const mjModel& m) {
  json all;
  all["sizes"] = sizes(m);
  all["option"] = option(m);
  all["stat"] = {{"meaninertia", m.stat.meaninertia},
                 {"meanmass", m.stat.meanmass},
                 {"meansize", m.stat.meansize},
                 {"extent", m.stat.extent},
                 {"center", numbers(m.stat.center, 3)}};
  all["body"] = list(m, m.nbody, body);
  all["joint"] = list(m, m.njnt, joint);
  all["geom"] = list(m, m.ngeom, geom);
  all["site"] = list(m, m.nsite, site);
  all["actuator"] = list(m, m.nu, actuator);
  all["tendon"] = list(m, m.ntendon, tendon);
  all["exclude"] = list(m, m.nexclude, [](const mjModel& model, int i) { return json(model.exclude_signature[i]); });
  return all;
}

NumberDifference compare_numbers(const json& found, const json& wanted, double tolerance) {
  NumberDifference out;
  Comparison(out, tolerance).compare("", found, wanted);
  return out;
}

}  // namespace troupe::testing
