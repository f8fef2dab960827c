// Puts the page together.

import {Broker} from "./broker.js";
import {Credentials} from "./credentials.js";
import {$, setText} from "./dom.js";
import {Figures} from "./figures.js";
import {House} from "./house.js";
import {hubUrl, loadSettings} from "./hub.js";
import {Publish} from "./publish.js";
import {Receive} from "./receive.js";
import {Register} from "./register.js";
import {Subscriptions} from "./subscriptions.js";
import {TokenTool} from "./token.js";

const LIVE = {connecting: "connecting", open: "live", waiting: "reconnecting", closed: "paused"};

async function begin() {
  setText($("#hub-url"), hubUrl.href);
  const settings = await loadSettings();
  setText($("#version"), settings.version);
  const credentials = new Credentials({mint: settings.mint});
  const register = new Register();
  const figures = new Figures($("#figures-list"));
  const broker = new Broker({section: $("#broker"), link: $("#broker-link")});
  const subscriptions = new Subscriptions({body: $("#subscriptions tbody"), count: $("#subscriptions-count"), note: $("#subscriptions-note")});
  const receive = new Receive({settings, credentials, register});
  new Publish({credentials, register, onType: (type) => receive.expect(type)});
  new TokenTool({settings, credentials});

  const house = new House({
    settings, credentials,
    onFigures: (update) => {
      figures.show(update);
      broker.show(update.broker);
    },
    onSnapshot: (documents) => subscriptions.replace(documents),
    onSubscription: (document) => subscriptions.change(document),
    onRefused: (sentence) => subscriptions.refused(sentence),
    onState: (state, {reason}) => {
      $("#live").dataset.state = state;
      setText($("#live"), reason && state === "closed" ? `stopped: ${reason}` : LIVE[state]);
    },
  });
  credentials.addEventListener("choose", () => !settings.mint?.subscriber && house.start());
  house.start();
}

begin().catch((error) => {
  const place = $("#page-problem");
  place.hidden = false;
  setText(place, `The page could not start: ${error.message}`);
});
