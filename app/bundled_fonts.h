#pragma once

namespace troupe::app {

/// Charts need a font. On a machine without fontconfig's own configuration, a program that lies beside share/ (a
/// package) takes the font there. Call before threads: it sets FONTCONFIG_FILE, unless that is set.
void use_bundled_fonts();

}  // namespace troupe::app
