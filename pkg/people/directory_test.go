package people

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestWhoAsksAfterAChangeSeesIt(t *testing.T) {
	d, err := Open(&rest.Config{Host: "https://127.0.0.1:1"}, Options{}) // it gets no requests
	require.NoError(t, err)
	put := func(name string, version int) {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": name}}}
		u.SetName(v1.ObjectName(name))
		u.SetUID(types.UID("of " + name))
		u.SetResourceVersion(fmt.Sprint(version))
		d.users.Put(u)
	}
	for i := range 20 { // so that a snapshot takes a while
		put(fmt.Sprintf("user%d", i), 1)
	}
	for version := 1; version <= 2000; version++ {
		// The watch and the response to a write deliver the same object. The second delivery must not return before all readers receive the change of
		// the first delivery.
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				put("ann", version)
				p, err := d.Person("ann")
				if assert.NoError(t, err) {
					assert.Equal(t, fmt.Sprint(version), p.User.ResourceVersion)
				}
			})
		}
		both.Wait()
		if t.Failed() {
			return
		}
	}
}
