#include "app/command_line.h"
#include "base/leave.h"

int main(int argc, char** argv) { troupe::base::leave(troupe::app::run_command_line(argc, argv)); }
