// SIGINT, SIGTERM and SIGHUP end long work at the next safe point, so that destructors clean up.
#pragma once

namespace fp8kv {

// Installs the handlers. A second signal ends the program at once.
void install_interrupt_handlers();

// Throws Error{kind: interrupted} when a signal has arrived. Cheap: call it in every long loop.
void check_interrupt();

}  // namespace fp8kv
