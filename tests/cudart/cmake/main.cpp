#include <stdio.h>

void square(int *v, int n);
int twice(int);

int main()
{
    int v[] = { 0, 1, 2, 3, 4 };
    square(v, 5);
    bool right = v[2] == 4 && v[4] == 16 && twice(21) == 42;
    printf("%s\n", right ? "passed" : "FAILED");
    return !right;
}
