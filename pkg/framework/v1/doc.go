// +kubebuilder:object:generate=true
// +groupName=frameworkcontroller.microsoft.com

package v1

import _ "embed"

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:maxDescLen=200,generateEmbeddedObjectMeta=true paths=. output:crd:dir=.
//go:generate mv frameworkcontroller.microsoft.com_frameworks.yaml crd.yaml
//go:generate go run ../../../hack/slimcrd crd.yaml

// CRD is the custom resource definition, in YAML.
//
//go:embed crd.yaml
var CRD []byte
