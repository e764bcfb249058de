#pragma once

#include <string>

namespace troupe::data {

/// Python's repr of a float: shortest digits, an exponent below 1e-4 and from 1e16 on.
std::string float_repr(double value);

/// Python's repr of a complex number: 2j, (1+2j), (-0-2j).
std::string complex_repr(double real, double imaginary);

/// Python's repr of a string given in UTF-8.
std::string string_repr(const std::string& text);

/// Python's repr of a bytes object.
std::string bytes_repr(const std::string& bytes);

}  // namespace troupe::data
