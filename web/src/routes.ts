// Every page: its path, its name in the title, and its file, which is loaded when it is first opened.
import type { Component } from "svelte";

/** What each page is given: the values of the parameters of its path. */
export interface PageProps {
  params: Record<string, string>;
}

export interface Route {
  /** with parameters as `:id` */
  path: string;
  title: string;
  /** the entry of the top bar that is lit */
  nav: "holdouts" | "ask" | "plan" | "experiments" | "keys" | "more";
  /** whether only an admin has a use for it */
  admin?: boolean;
  load: () => Promise<{ default: Component<PageProps> }>;
}

export const routes: Route[] = [
  { path: "/", title: "Holdouts", nav: "holdouts", load: () => import("./pages/Holdouts.svelte") },
  { path: "/signin", title: "Holdouts", nav: "holdouts", load: () => import("./pages/Holdouts.svelte") },
  { path: "/holdouts", title: "Holdouts", nav: "holdouts", load: () => import("./pages/Holdouts.svelte") },
  { path: "/holdouts/:id", title: "Holdout", nav: "holdouts", load: () => import("./pages/Holdout.svelte") },
  { path: "/holdouts/:id/ask", title: "Ask", nav: "ask", load: () => import("./pages/Ask.svelte") },
  { path: "/holdouts/:id/report", title: "Final report", nav: "holdouts", load: () => import("./pages/Report.svelte") },
  { path: "/plan", title: "Plan", nav: "plan", load: () => import("./pages/Plan.svelte") },
  { path: "/upload", title: "Upload", nav: "plan", admin: true, load: () => import("./pages/Upload.svelte") },
  { path: "/experiments", title: "Experiments", nav: "experiments", load: () => import("./pages/Experiments.svelte") },
  { path: "/keys", title: "Keys", nav: "keys", admin: true, load: () => import("./pages/Keys.svelte") },
  { path: "/more", title: "More", nav: "more", load: () => import("./pages/More.svelte") },
];
