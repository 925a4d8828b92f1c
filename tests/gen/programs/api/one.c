/* Calls cuInit and, by the header's name, cuMemAlloc_v2; says "cuGetName" without calling it. */
#include "shared.h"
int main(void)
{
    cuInit(0); /* cuStreamSet(0) is a comment */
    return cuMemAlloc(0, sizeof("cuGetName"));
}
