int helper(void)
{
    return cuMemcpy_v2(0, 0, 0);
}
