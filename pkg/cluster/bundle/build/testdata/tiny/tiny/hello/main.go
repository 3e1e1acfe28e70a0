// Hello is the smallest program that shows how it was linked.
package main

var version = "none"

func main() { println(version) }
