/* Here a name is a symbol. */
int main(void)
{
    return cuMemAlloc(0, 0);
}
