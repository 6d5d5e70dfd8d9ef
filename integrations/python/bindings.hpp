// The parts of the module, one a file.
#pragma once

#include <pybind11/pybind11.h>

namespace sdr::python {

void bind_model(pybind11::module_& module);       // PathSpec, SchemeSpec, Transfer, CompletionTime, Allreduce, samples
void bind_grid(pybind11::module_& module);        // the theory over arrays of paths and sizes
void bind_planner(pybind11::module_& module);     // plan
void bind_simulation(pybind11::module_& module);  // simulate

}  // namespace sdr::python
