package release

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// threeWay returns the patch from live to want, computed like in kubectl and Helm. The patch removes the parts of base that are missing in want, and
// keeps additions of other programs. A nil patch means that the objects are equal.
func threeWay(base, want, live *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	var raw [3][]byte
	for i, u := range []*unstructured.Unstructured{base, want, live} {
		var err error
		if raw[i], err = json.Marshal(u.Object); err != nil {
			return nil, "", fmt.Errorf("write %s as JSON: %w", idOf(u), err)
		}
	}
	kind := types.MergePatchType
	var patch []byte
	var err error
	if typed, known := typedObject(want); known {
		kind = types.StrategicMergePatchType
		var fields strategicpatch.PatchMetaFromStruct
		if fields, err = strategicpatch.NewPatchMetaFromStruct(typed); err == nil {
			patch, err = strategicpatch.CreateThreeWayMergePatch(raw[0], raw[1], raw[2], fields, true)
		}
	} else {
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(raw[0], raw[1], raw[2])
	}
	if err != nil {
		return nil, "", fmt.Errorf("compare %s: %w", idOf(want), err)
	}
	if string(patch) == "{}" || len(patch) == 0 {
		return nil, kind, nil
	}
	return patch, kind, nil
}

// typedObject returns an empty object of the Go type that defines how the lists of a kind are merged. typedObject returns false for custom resources
// and custom resource definitions, because Go types exist only for built-in kinds.
func typedObject(u *unstructured.Unstructured) (any, bool) {
	if u.GetKind() == "CustomResourceDefinition" {
		return nil, false
	}
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	return typed, err == nil
}
