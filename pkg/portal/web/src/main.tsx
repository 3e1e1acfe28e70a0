// The frame around all pages, and the choice of the page.
import { render } from "preact";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Home } from "./home";
import { JobPage } from "./job";
import { Jobs } from "./jobs";
import { all, help, listen } from "./keys";
import { later } from "./later";
import { Machines } from "./machines";
import { QueuePage } from "./queue";
import { follow, notifies, possible, setNotifies } from "./notify";
import { Palette } from "./palette";
import { Profile } from "./profile";
import { address, base, go, place, start } from "./route";
import { begin, me, pages, refused, signOut } from "./session";
import { Submit } from "./submit";
import { NewTemplate, TemplatePage, Templates } from "./templates";
import { language, languages, speak, t } from "./text";
import { Asking, Icon, Loading, Lost, Menu, Problem, Toasts, toast, type IconName } from "./ui";
import { UsagePage } from "./usage";
import { failure } from "./api";

function Page() {
  const [first, user, name, rest] = place.value.path;
  if (first === undefined) return <Home />;
  if (first === "jobs" && user === undefined) return <Jobs />;
  if (first === "jobs" && name !== undefined && rest === undefined) return <JobPage key={user + "/" + name} user={user!} name={name} />;
  if (first === "submit" && user === undefined) return <Submit key={place.value.query.toString()} />;
  if (first === "machines" && user === undefined) return <Machines />;
  if (first === "queue" && user === undefined) return <QueuePage />;
  if (first === "usage" && user === undefined) return <UsagePage />;
  if (first === "profile" && user === undefined) return <Profile />;
  if (first === "templates" && name === undefined) return user === undefined ? <Templates /> : user === "new" ? <NewTemplate /> : <TemplatePage key={user} id={user} />;
  if (first === "admin" && rest === undefined) return <Administration tab={user} name={name} />;
  return <p class="empty">{t("notFound")}</p>;
}

const Admin = later(() => import("./admin").then((file) => file.Admin));

/** The pages for administrators. Addresses of OpenPAI's portal lead there, and everyone else to their first page. */
function Administration(at: { tab?: string; name?: string }) {
  const home = place.value.query.get("else") === "home" && !me.value?.grants.administrator;
  useEffect(() => {
    if (home) go(address([]), true);
  }, []);
  return home ? <Loading /> : <Admin {...at} />;
}

function NavLink({ path, icon, label, at }: { path: string[]; icon: IconName; label: string; at: boolean }) {
  return (
    <a href={address(path)} aria-current={at ? "page" : undefined} title={label}>
      <Icon name={icon} />
      <span>{label}</span>
    </a>
  );
}

function theme(): string {
  return document.documentElement.dataset.theme ?? "auto";
}

function setTheme(name: string): void {
  if (name === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    document.documentElement.dataset.theme = name;
    localStorage.setItem("theme", name);
  }
}

function Side() {
  const first = place.value.path[0];
  const chosen = useSignal(theme());
  const leave = () => signOut().catch((e) => toast(failure(e).message));
  return (
    <nav class="side">
      <a class="brand" href={base} aria-label={"paictl: " + t("home")}>
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M2 2h7v7H2zM11 2h7v7h-7zM2 11h7v7H2z" />
          <path class="lit" d="M11 11h7v7h-7z" />
        </svg>
        <span>paictl</span>
      </a>
      <div class="links">
        <NavLink path={[]} icon="home" label={t("home")} at={first === undefined} />
        <NavLink path={["jobs"]} icon="jobs" label={t("jobs")} at={first === "jobs"} />
        <NavLink path={["submit"]} icon="plus" label={t("submit")} at={first === "submit"} />
        <NavLink path={["templates"]} icon="file" label={t("templates")} at={first === "templates"} />
        <NavLink path={["queue"]} icon="queue" label={t("queue")} at={first === "queue"} />
        <NavLink path={["machines"]} icon="machines" label={t("machines")} at={first === "machines"} />
        <NavLink path={["usage"]} icon="usage" label={t("usagePage")} at={first === "usage"} />
        {me.value?.grants.administrator ? <NavLink path={["admin"]} icon="shield" label={t("admin")} at={first === "admin"} /> : null}
      </div>
      {pages.value.length > 0 ? (
        <div class="links others">
          <h2>{t("pages")}</h2>
          {pages.value.map((p) => (
            <a key={p.url} href={p.url} data-leave target="_blank" rel="noreferrer">
              <Icon name="page" />
              <span>{p.name}</span>
            </a>
          ))}
        </div>
      ) : null}
      <div class="person">
        <Menu
          label={me.value?.name ?? ""}
          items={[
            { label: t("profile"), icon: "person" as IconName, run: () => go(address(["profile"])) },
            null,
            ...["auto", "light", "dark"].map((name) => ({
              label: `${t("theme")}: ${t(("theme." + name) as "theme.auto")}`,
              icon: (chosen.value === name ? "check" : undefined) as IconName | undefined,
              run: () => {
                setTheme(name);
                chosen.value = name;
              },
            })),
            null,
            ...languages.map(([code, name]) => ({ label: name, icon: (language.value === code ? "check" : undefined) as IconName | undefined, run: () => speak(code) })),
            null,
            ...(possible() ? [{ label: t("notify"), icon: (notifies.value ? "check" : undefined) as IconName | undefined, run: () => void setNotifies(!notifies.value).then((refused) => refused && toast(refused)) }] : []),
            { label: t("shortcuts"), icon: "keys" as IconName, run: () => (help.value = true) },
            { label: t("signOut"), icon: "out" as IconName, run: () => void leave() },
          ]}
        >
          <span class="face" aria-hidden="true">
            {(me.value?.name ?? "?").slice(0, 1).toUpperCase()}
          </span>
          <span class="who">{me.value?.displayName || me.value?.name}</span>
        </Menu>
      </div>
    </nav>
  );
}

function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (help.value) box.current?.showModal();
    else box.current?.close();
  }, [help.value]);
  return (
    <dialog ref={box} onClose={() => (help.value = false)} onClick={(e) => e.target === box.current && (help.value = false)} aria-labelledby="keys">
      <div class="dialog">
        <h2 id="keys">{t("shortcuts")}</h2>
        <dl class="keys">
          {all.map(([keys, text]) => (
            <div key={keys}>
              <dt>
                {keys.split("  ").map((k) => (
                  <kbd key={k}>{k}</kbd>
                ))}
              </dt>
              <dd>{t(text)}</dd>
            </div>
          ))}
        </dl>
        <div class="buttons">
          <button type="button" onClick={() => (help.value = false)}>
            {t("close")}
          </button>
        </div>
      </div>
    </dialog>
  );
}

function App() {
  if (refused.value && refused.value.status !== 401) {
    return (
      <main class="alone">
        <Problem of={refused.value} again={() => void begin()} />
      </main>
    );
  }
  if (!me.value) return refused.value ? null : <Loading />;
  return (
    <>
      <Side />
      <main>
        <Lost />
        <Page />
      </main>
      <Toasts />
      <Asking />
      <Palette />
      <Help />
    </>
  );
}

// The address of the icon is relative to the first page.
const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
if (icon) icon.href = icon.href;
start();
listen();
void begin().then(follow);
render(<App />, document.getElementById("app")!);
