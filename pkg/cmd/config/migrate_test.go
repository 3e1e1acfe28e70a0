package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// The charts must accept the sections that are migrated from the original's configuration.
func TestTheChartsTakeMigratedSections(t *testing.T) {
	for _, name := range []string{"g1", "g2"} {
		t.Run(name, func(t *testing.T) {
			m, err := config.Migrate("../../config/testdata/migrate/"+name, "new", catalogue.Reference(), catalogue.Check)
			require.NoError(t, err)
			assert.Contains(t, string(m.Files[config.ServicesFile]), "# prometheus:\n")
		})
	}
}
