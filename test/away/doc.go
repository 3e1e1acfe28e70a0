// Package away takes away what the server of the platform needs, and the server itself, as processes: what was asked for is neither lost nor
// made twice, and streams go on.
// In: cmd/pai-server and cmd/pai-controller, a real API server. Out: what they answer meanwhile and afterwards.
package away
