// Package docs holds the project's documents to what the program does: commands, flags, examples of files, links.
// In: README.md, docs/ and the other pages for people. Out: tests only.
package docs
