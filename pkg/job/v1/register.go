package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the Framework, as in FrameworkController.
var GroupVersion = schema.GroupVersion{Group: "frameworkcontroller.microsoft.com", Version: "v1"}

// The names of the resource.
const (
	Kind   = "Framework"
	Plural = "frameworks"
)

// Resource is the name in the API's paths and roles.
var Resource = GroupVersion.WithResource(Plural)

// AddToScheme adds the types to a scheme, for clients.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Framework{}, &FrameworkList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
