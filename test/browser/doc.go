// Package browser tests the server's pages in a real browser.
// In: a server on a real API server, and Debian's chromium. Out: the results of scripts that run in the pages.
package browser
