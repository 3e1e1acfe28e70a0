// Package docs checks that the project's documents agree with the program. It checks commands, flags, examples of files, and links.
// In: README.md, docs/ and the other pages for people. Out: tests only.
package docs
