/* A program with the stand-in client linked in: says Hello by its constructor, ends with 7. */
int main(void) {
    return 7;
}
