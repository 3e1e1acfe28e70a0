package v2

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/wire"
)

// keyACLs is the key for the grants in OpenPAI's extension of a group. This server stores the grants in fields of the Group, and doesn't change other
// keys below keyACLs.
const keyACLs = "acls"

// Keys below acls that contain grants.
const (
	keyAdmin    = "admin"
	keyVCs      = "virtualClusters"
	keyStorages = "storageConfigs"
)

type object = map[string]json.RawMessage

// objectOf parses a JSON object. It returns an empty object for any other text.
func objectOf(text json.RawMessage) object {
	out := object{}
	if len(text) > 0 && json.Unmarshal(text, &out) != nil || out == nil {
		return object{}
	}
	return out
}

// extensionOf returns the extension of a group in the form that OpenPAI's clients read.
func extensionOf(g *v1.GroupSpec) (object, error) {
	out := object{}
	if g.Extension != nil {
		out = objectOf(g.Extension.Raw)
	}
	acls, vcs := objectOf(out[keyACLs]), []string{}
	for _, vc := range g.VirtualClusters {
		vcs = append(vcs, vc.Name)
	}
	for key, value := range map[string]any{keyAdmin: g.Administrator, keyVCs: vcs, keyStorages: append([]string{}, g.Storages...)} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		acls[key] = text
	}
	text, err := json.Marshal(acls)
	out[keyACLs] = text
	return out, err
}

// setExtension sets the grants and the extension of a group. If a virtual cluster was already granted, the other fields of the grant don't change.
func setExtension(g *v1.GroupSpec, extension object) error {
	out := maps.Clone(extension)
	acls, err := grants(out[keyACLs])
	if err != nil {
		return err
	}
	g.Administrator, g.Storages = acls.admin, acls.storages
	had := g.VirtualClusters
	g.VirtualClusters = nil
	for _, name := range acls.vcs {
		at := slices.IndexFunc(had, func(v v1.VCGrant) bool { return v.Name == name })
		if at < 0 {
			g.VirtualClusters = append(g.VirtualClusters, v1.VCGrant{Name: name})
			continue
		}
		g.VirtualClusters = append(g.VirtualClusters, had[at])
	}
	delete(out, keyACLs)
	if len(acls.rest) > 0 {
		if out[keyACLs], err = json.Marshal(acls.rest); err != nil {
			return err
		}
	}
	g.Extension = nil
	if len(out) > 0 {
		text, err := json.Marshal(out)
		if err != nil {
			return err
		}
		if len(text) > maxGroupExtension {
			return wire.Bad(fmt.Sprintf(`"extension" is larger than %d KiB`, maxGroupExtension>>10))
		}
		g.Extension = &runtime.RawExtension{Raw: text}
	}
	return nil
}

// maxGroupExtension limits the extension that clients may store with a group, in bytes.
const maxGroupExtension = 64 << 10

// granted holds the known keys of a group's acls. rest holds all other keys.
type granted struct {
	admin         bool
	vcs, storages []string
	rest          object
}

func grants(text json.RawMessage) (g granted, err error) {
	if len(text) > 0 && string(text) != "null" && json.Unmarshal(text, &g.rest) != nil {
		return g, wire.Bad(`"extension.acls" must be an object`)
	}
	for key, to := range map[string]any{keyAdmin: &g.admin, keyVCs: &g.vcs, keyStorages: &g.storages} {
		if value, there := g.rest[key]; there && json.Unmarshal(value, to) != nil {
			want := "an array of strings"
			if key == keyAdmin {
				want = "a boolean"
			}
			return g, wire.Bad(fmt.Sprintf(`"extension.acls.%s" must be %s`, key, want))
		}
		delete(g.rest, key)
	}
	g.vcs, g.storages = once(g.vcs), once(g.storages)
	return g, nil
}

// once returns the names without duplicates, in the same order.
func once(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// merge sets keys of an extension. A null value removes its key. It sets the keys below acls one by one, so that a client that sends only storages
// doesn't remove the virtual clusters.
func merge(into, change object) {
	for key, value := range change {
		var below object
		if key == keyACLs && json.Unmarshal(value, &below) == nil && below != nil {
			acls := objectOf(into[key])
			merge(acls, below)
			value, _ = json.Marshal(acls) // it was read from JSON
		}
		if none(value) {
			delete(into, key)
			continue
		}
		into[key] = value
	}
}

func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func put(into object, path []string, value json.RawMessage) {
	key := path[0]
	if len(path) > 1 {
		below := objectOf(into[key])
		put(below, path[1:], value)
		value, _ = json.Marshal(below) // it was read from JSON
	}
	merge(into, object{key: value})
}

// externalName returns the name of the first provider's group whose members are in the group, or "".
func externalName(g *v1.GroupSpec) string {
	if len(g.External) == 0 {
		return ""
	}
	return g.External[0].Name
}

// setExternalName sets the provider's group to PROVIDER/NAME. For the name that externalName returns, it changes nothing.
func setExternalName(g *v1.GroupSpec, text string) error {
	provider, name, whole := strings.Cut(text, "/")
	switch {
	case text == externalName(g):
	case len(g.External) > 1:
		return &wire.Error{Status: 400, Code: wire.CodeParameters, Message: `"externalName" can't say which of several is meant`, Remedy: "change them with: paictl group set " + g.Name + " --add-external or --remove-external PROVIDER/GROUP"}
	case text == "":
		g.External = nil
	case !whole || provider == "" || name == "":
		return &wire.Error{Status: 400, Code: wire.CodeParameters, Message: `"externalName" must be PROVIDER/GROUP: a cluster may have several providers of sign-ins`}
	default:
		g.External = []v1.ExternalGroup{{Provider: provider, Name: name}}
	}
	return nil
}
