package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the Framework. They are the same as in FrameworkController.
var GroupVersion = schema.GroupVersion{Group: "frameworkcontroller.microsoft.com", Version: "v1"}

// The names of the resource type.
const (
	Kind   = "Framework"
	Plural = "frameworks"
)

// Resource identifies the resource type in API paths and in the rules of roles.
var Resource = GroupVersion.WithResource(Plural)

// AddToScheme adds the types of this package to a scheme, as clients need it.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Framework{}, &FrameworkList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
