// The pages of administrators, and their tabs.
import { useEffect } from "preact/hooks";
import { Actions } from "./admin-actions";
import { Alerts } from "./admin-alerts";
import { Audit } from "./admin-audit";
import { GroupPage, Groups, NewGroup } from "./admin-groups";
import { NewPerson, People, PersonPage } from "./admin-people";
import { Services } from "./admin-services";
import { NewVC, VCPage, VirtualClusters } from "./admin-vcs";
import { call } from "./api";
import { useRead } from "./read";
import { address, place } from "./route";
import { begin, me } from "./session";
import { t } from "./text";
import "./text-admin";
import { Loading, Problem } from "./ui";

const tabs = ["people", "groups", "virtual-clusters", "services", "alerts", "actions", "audit"] as const;

/** Shows the server's refusal to people who aren't administrators. The server decides; the page only asks. */
function Refused() {
  const { value, error, again } = useRead("", (signal) => call("GET /api/v3/tokens", { query: { all: true }, signal }));
  useEffect(() => {
    if (value.value) void begin(); // the person has become an administrator
  }, [value.value]);
  return <section class="page">{error.value ? <Problem of={error.value} again={again} /> : <Loading />}</section>;
}

function Content({ tab, name }: { tab: string; name?: string }) {
  const adds = name === undefined && place.value.query.has("add");
  switch (tab) {
    case "people":
      return name !== undefined ? <PersonPage key={name} name={name} /> : adds ? <NewPerson /> : <People />;
    case "groups":
      return name !== undefined ? <GroupPage key={name} name={name} /> : adds ? <NewGroup /> : <Groups />;
    case "virtual-clusters":
      return name !== undefined ? <VCPage key={name} name={name} /> : adds ? <NewVC /> : <VirtualClusters />;
    case "services":
      return <Services />;
    case "alerts":
      return <Alerts />;
    case "actions":
      return <Actions />;
    case "audit":
      return <Audit />;
  }
  return <p class="empty">{t("notFound")}</p>;
}

export function Admin({ tab = "people", name }: { tab?: string; name?: string }) {
  if (!me.value?.grants.administrator) return <Refused />;
  return (
    <section class="page admin">
      <nav class="tabs" role="tablist" aria-label={t("admin")}>
        {tabs.map((x) => (
          <a key={x} role="tab" aria-selected={x === tab} href={address(["admin", x])}>
            {t(`admin.tab.${x}`)}
          </a>
        ))}
      </nav>
      <Content tab={tab} name={name} />
    </section>
  );
}
