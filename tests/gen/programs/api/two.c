int main(void)
{
    return cuInit(0);
}
