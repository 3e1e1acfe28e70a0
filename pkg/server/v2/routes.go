// Package v2 serves OpenPAI's API, /api/v2, and the part of /api/v1 that clients still call.
// In: requests of OpenPAI's portal, SDKs and extensions. Out: routes.
package v2

import (
	"slices"

	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/server"
)

// The prefixes of the two versions.
const (
	prefix = "/api/v2"
	old    = "/api/v1"
)

const (
	// textBytes limits the size of a body with a job file. It exceeds the maximum job file, so that a file that is slightly too long gets the finding
	// about its length.
	textBytes = 2 * protocol.MaxBytes
	// submissions is the maximum number of a person's submissions that are checked at the same time.
	submissions = 2
)

// Routes returns the routes of /api/v2 and /api/v1.
func Routes(version string) []server.Route {
	return slices.Concat(infoRoutes(version), tokenRoutes(), oidcRoutes(), jobRoutes(), logRoutes(), attemptRoutes(), tagRoutes(), userRoutes(), groupRoutes(), manageRoutes(), vcRoutes(), storageRoutes(), templateRoutes(), alertRoutes(), kubeRoutes())
}

// message is the response to a change. It contains a sentence about the change.
type message struct {
	Status  int    `json:"status,omitempty"`
	Message string `json:"message"`
	// Warnings holds the findings about a job file that was accepted.
	Warnings []string `json:"warnings,omitempty"`
}
