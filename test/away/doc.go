// Package away stops the server and the processes that it needs, one at a time. Requested objects must neither be lost nor be created twice, and
// streams must continue.
// In: cmd/pai-server and cmd/pai-controller, a real API server. Out: their responses during the outage and afterwards.
package away
