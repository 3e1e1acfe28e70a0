// Package templates holds the Helm charts of the platform's services.
// In: nothing. Out: charts/<service>/, as in the repository.
package templates

import _ "embed" // JobDefinition

// JobDefinition is the custom resource definition of Frameworks, which "go generate ./pkg/job/v1" writes.
//
//go:embed charts/job-controller/files/crd.yaml
var JobDefinition []byte
