// +kubebuilder:object:generate=true
// +groupName=paictl.openpai.org

package v1

import _ "embed"

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:maxDescLen=200 paths=. output:crd:dir=.
//go:generate sh -c "cat paictl.openpai.org_users.yaml paictl.openpai.org_groups.yaml paictl.openpai.org_templates.yaml > crd.yaml && rm paictl.openpai.org_users.yaml paictl.openpai.org_groups.yaml paictl.openpai.org_templates.yaml"

// CRD holds the three custom resource definitions, each as a YAML document.
//
//go:embed crd.yaml
var CRD []byte
