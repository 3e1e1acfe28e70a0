package user

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestAPersonIsShownWithoutGrantsOfDeletedThings(t *testing.T) {
	p := &people.Person{Name: "ann", User: &v1.User{}, Grants: rules.Grants{VCs: map[string]rules.VC{"gone": {}, "vision": {}}, Storages: []string{"gone"}}}
	u := newUser(existing(&people.Known{VirtualClusters: []string{"vision"}, Storages: []string{"data"}}, p))
	assert.Equal(t, []v1.VCGrant{{Name: "vision"}}, u.VCs)
	assert.Empty(t, u.Storages)
	assert.Len(t, p.Grants.VCs, 2, "the directory's own stays")
}
