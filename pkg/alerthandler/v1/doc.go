// +kubebuilder:object:generate=true
// +groupName=paictl.openpai.org

package v1

import _ "embed"

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:maxDescLen=200 paths=. output:crd:dir=.
//go:generate mv paictl.openpai.org_actions.yaml crd.yaml

// CRD holds the custom resource definition of Action as a YAML document.
//
//go:embed crd.yaml
var CRD []byte
