// Package v2 is OpenPAI's API in its own words, /api/v2, and as much of /api/v1 as clients still call.
// In: requests of OpenPAI's portal, SDKs and extensions. Out: routes.
package v2

import (
	"slices"

	"github.com/openpai/paictl/pkg/protocol"
	"github.com/openpai/paictl/pkg/server"
)

// Where the two versions lie.
const (
	prefix = "/api/v2"
	old    = "/api/v1"
)

const (
	// textBytes is how long a job file may be. One that is a little too long gets the finding that says so.
	textBytes = 2 * protocol.MaxBytes
	// submissions is how many of them a person has checked at a time.
	submissions = 2
)

// Routes are all of /api/v2 and /api/v1.
func Routes(version string) []server.Route {
	return slices.Concat(infoRoutes(version), tokenRoutes(), oidcRoutes(), jobRoutes(), logRoutes(), attemptRoutes(), tagRoutes(), userRoutes(), groupRoutes(), manageRoutes(), vcRoutes(), storageRoutes(), templateRoutes(), alertRoutes(), kubeRoutes())
}

// message is what changes answer.
type message struct {
	Status  int    `json:"status,omitempty"`
	Message string `json:"message"`
	// Warnings are findings about a job file that was accepted.
	Warnings []string `json:"warnings,omitempty"`
}
