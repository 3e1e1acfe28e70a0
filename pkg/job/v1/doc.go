// +kubebuilder:object:generate=true
// +groupName=frameworkcontroller.microsoft.com

package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:maxDescLen=200,generateEmbeddedObjectMeta=true paths=. output:crd:dir=.
//go:generate mv frameworkcontroller.microsoft.com_frameworks.yaml ../../../templates/charts/job-controller/files/crd.yaml
//go:generate go run ../../../hack/slimcrd ../../../templates/charts/job-controller/files/crd.yaml
