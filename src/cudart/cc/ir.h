/*
 * Changes of LLVM's intermediate code that gmux-cc needs (ir.c has main(), and what runs before a
 * program's main(); managed.c has __managed__ variables). One thread, one module.
 */
#ifndef GMUX_CUDART_CC_IR_H
#define GMUX_CUDART_CC_IR_H

#include <llvm-c/Types.h>
#include <stdbool.h>

/* Ends the process after one line on standard error. */
_Noreturn void ir_fail(const char *what, const char *why);

/* Makes void function(void) run before main() and before static variables are initialised; the one
 * that was given last comes first. */
void ir_run_first(LLVMValueRef function);

/* Changes code for kernels, or for the host, to treat managed variables as such. */
void ir_managed(LLVMModuleRef of, bool kernels);

#endif
