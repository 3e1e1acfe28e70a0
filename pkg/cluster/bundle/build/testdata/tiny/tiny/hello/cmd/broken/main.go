// Broken doesn't compile.
package main

func main() { undefinedName() }
