// Package away stops the processes that the server of the platform needs, and the server itself: requested objects are neither lost nor created
// twice, and streams continue.
// In: cmd/pai-server and cmd/pai-controller, a real API server. Out: their responses during the outage and afterwards.
package away
