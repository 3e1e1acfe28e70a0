#include <stdio.h>

#define TEXT(x) #x
#define VERSION_TEXT(x) TEXT(x)

int main(void) {
  puts(VERSION_TEXT(VERSION));
  return 0;
}
