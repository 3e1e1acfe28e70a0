package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of User, Group and Template.
var GroupVersion = schema.GroupVersion{Group: "paictl.openpai.org", Version: "v1"}

// The kinds of objects.
const (
	KindUser  = "User"
	KindGroup = "Group"
)

// The cluster-scoped resources of the kinds.
var (
	Users  = GroupVersion.WithResource("users")
	Groups = GroupVersion.WithResource("groups")
)
