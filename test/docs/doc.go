// Package docs checks that the project's documents agree with the program: commands, flags, examples of files, links.
// In: README.md, docs/ and the other pages for people. Out: tests only.
package docs
